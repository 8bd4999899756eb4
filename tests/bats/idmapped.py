"""idmapped.py FROM TO: shows a mount a second time, with other users: 0 is 100000 there, as a container with users of its
own sees it. Ends with 3 where the kernel has no idmapped mounts of this file system's kind, and with 4 where nobody may make
users, as in a chroot."""
import ctypes
import errno
import os
import signal
import struct
import sys

OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
PR_SET_PDEATHSIG, CLONE_NEWUSER, OPEN_TREE_CLONE, AT_EMPTY_PATH, MOVE_MOUNT_F_EMPTY_PATH, MOUNT_ATTR_IDMAP = 1, 0x10000000, 1, 0x1000, 4, 0x100000
libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def users():
    """Starts a process that has users of its own and waits. Returns its number."""
    ready, say = os.pipe()
    child = os.fork()
    if child == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if libc.unshare(CLONE_NEWUSER) != 0:
            os._exit(4)
        os.write(say, b"1")
        signal.pause()
    os.close(say)
    if os.read(ready, 1) == b"":
        sys.exit(4)
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{child}/{name}", "w") as file:
            file.write("0 100000 65536")
    return child


source, target = (path.encode() for path in sys.argv[1:])
child = users()
try:
    namespace = os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
    copy = call(OPEN_TREE, -100, source, OPEN_TREE_CLONE)
    attributes = struct.pack("QQQQ", MOUNT_ATTR_IDMAP, 0, 0, namespace)
    call(MOUNT_SETATTR, copy, b"", AT_EMPTY_PATH, attributes, len(attributes))
    call(MOVE_MOUNT, copy, b"", -100, target, MOVE_MOUNT_F_EMPTY_PATH)
except OSError as error:
    print(error, file=sys.stderr)
    sys.exit(3 if error.errno in (errno.EINVAL, errno.ENOSYS) else 1)
finally:
    os.kill(child, signal.SIGKILL)
