// Command image makes PaV's container image from compiled programs, one for each platform, and pushes it. It compiles
// nothing. The image has the program, PaV's licence and those of all that is linked into the program, and no shell.
//
//	image -name NAME -version VERSION -revision COMMIT -created SECONDS [-push] -out IMAGE.tar PROGRAM...
//
// IMAGE.tar is an archive of an OCI image layout, with one index of the images of all platforms. The digest of the index
// is printed. It depends on what is given, and not on when or where the image is made. Run it in the root of the
// checkout, from which the licences are taken. With -push, the image is also pushed to the registry of NAME, with the
// credentials of "docker login" or "podman login".
package main
