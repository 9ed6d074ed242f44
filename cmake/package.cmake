# package.cmake -- the .deb that cpack makes of an installed tree.  packages/deb configures, builds and calls cpack.
#
# dpkg-shlibdeps finds the libraries that Tenon's own programs need.  What `tenon build` needs is named here: a C compiler, the
# headers of libc and zlib.  Packages for one kind of data or one option of `tenon build` are recommended.
set(TENON_CONTACT "Tenon's developers <tenon@tenon.invalid>" CACHE STRING "the maintainer that the .deb names")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tenon)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${TENON_CONTACT})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiler from neural-network models to training programs")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/debian.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "gcc | c-compiler, libc6-dev, zlib1g-dev")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "liblzma-dev, libpng-dev, libturbojpeg0-dev, libopenblas-dev, libopenmpi-dev, openmpi-bin")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Tenon reads a neural network and its training recipe from a small text file.
It checks the shapes, derives the gradients, plans the memory to the byte, and
writes a C program that trains the network. The program needs neither Python
nor a framework.

The recommended packages are for data packed with xz, for folders of images,
and for the options --kernels=blas and --comm mpi of tenon build.")
include(CPack)
