import { spawnSync } from 'node:child_process'
import { mkdirSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { onFileFinished } from './cleanup.ts'
import { emptyFolder } from './home.ts'

/** Mounts a small disk and returns a folder on it, or null if mounting is not possible. */
export function mountSmallDisk(mib: number): string | null {
  const folder = join(emptyFolder(), 'disk')
  mkdirSync(folder)
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m`, 'tmpfs', folder])
  if (mounted.status !== 0) return null
  onFileFinished(() => spawnSync('umount', ['--lazy', folder]))
  return folder
}

/** Fills a disk and returns the file that does so. */
export function fillDisk(folder: string): string {
  const file = join(folder, 'ballast')
  for (let bytes = 1024 * 1024; bytes >= 1; bytes = Math.floor(bytes / 2)) {
    const chunk = Buffer.alloc(bytes, 1)
    try {
      for (;;) writeFileSync(file, chunk, { flag: 'a' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }
  expect(statfsSync(folder).bavail).toBe(0)
  return file
}
