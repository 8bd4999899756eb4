"""mapped_reader.py FILE FOLDER: maps a file, looks at one page, makes FOLDER/mapped, waits for FOLDER/go, and then writes the
whole file to standard output out of the map."""
import mmap
import pathlib
import sys
import time

folder = pathlib.Path(sys.argv[2])
with open(sys.argv[1], "rb") as file:
    pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
pages.madvise(mmap.MADV_RANDOM)
pages[0]
(folder / "mapped").touch()
while not (folder / "go").exists():
    time.sleep(0.02)
sys.stdout.buffer.write(pages)
