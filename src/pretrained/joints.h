/* Layers that lie in one tensor of the files of some families (an_family_joint), and apart in the model. */
#ifndef AN_PRETRAINED_JOINTS_H
#define AN_PRETRAINED_JOINTS_H

#include "formats/weights.h"
#include "pretrained/family.h"
#include "pretrained/names.h"

/* How many rows a parameter of a model has; 0: the model has none of this name. */
typedef int64_t an_rows_of(const void *model, const char *name);

/* Puts layers in the place of each tensor that has several, if the model has these layers and not the tensor. *family
 * is one with such files; it stays as it is if nothing was taken apart. NULL: nobody asks. */
an_status an_weights_part(an_weights *weights, an_rows_of *rows, const void *model, const an_family **family);

/* Puts the tensors of the family's files in the place of their layers. They have the widest type of their layers. */
an_status an_weights_join(an_weights *weights, const an_family *family);

/* Whether a parameter is a layer of such a tensor: the tensor's name, and the layer's place in it; -1: it is none. */
int an_joint_find(const an_family *family, const char *parameter, char tensor[AN_LAYER_NAME]);

#endif
