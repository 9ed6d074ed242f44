/* names.h -- names of the files that programs make by themselves, for the programs and for the
 * reference. */
#ifndef NAMES_H
#define NAMES_H

/* in the directory of --checkpoint: number of steps; lease */
#define FILE_CHECKPOINT "step-%08lld.safetensors"
#define FILE_LEASE      ".tenon-lease"
/* NAME.tmp-OWNER, while it is written */
#define FILE_TEMPORARY ".tmp-"
/* in a folder of images: split, channels, height, width, "-stretched" */
#define FILE_PACKED ".tenon-%s-%lldx%lldx%lld%s"
/* in the cache directory: hash, channels, height, width */
#define FILE_IMAGES "images-%016llx-%lldx%lldx%lld"
/* in `plans` of the cache directory, a plan of cuDNN: hash of the graph */
#define FILE_PLAN "%016llx.plan"
/* PLAN.lock, while a process makes the plan */
#define FILE_LOCK ".lock"
/* in the configuration directory */
#define FILE_SECRET "tenon/secret"
/* beside data */
#define FILE_SUMS "SHA256SUMS"

#endif
