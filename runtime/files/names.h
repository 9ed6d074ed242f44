/* names.h -- the names of files that programs make by themselves, in one place for the code that makes them and for the reference. */
#ifndef NAMES_H
#define NAMES_H

#define FILE_CHECKPOINT "step-%08lld.safetensors"     /* in the directory of --checkpoint; the number of steps */
#define FILE_LEASE      ".tenon-lease"                /* there, too */
#define FILE_TEMPORARY  ".tmp-"                       /* NAME.tmp-OWNER, while it is written */
#define FILE_PACKED     ".tenon-%s-%lldx%lldx%lld%s"  /* in a folder of images: split, channels, height, width, "-stretched" */
#define FILE_IMAGES     "images-%016llx-%lldx%lldx%lld" /* in the cache directory: hash, channels, height, width */
#define FILE_PLAN       "%016llx.plan"                /* of cuDNN, in the cache directory's plans; the graph's hash */
#define FILE_SECRET     "tenon/secret"                /* in the configuration directory */
#define FILE_SUMS       "SHA256SUMS"                  /* beside data */

#endif
