import { existsSync, mkdirSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/**
 * Creates a directory for its owner only, with its parents, unless it exists. Throws the error of
 * the system. `mkdirSync` with `recursive` never returns where mkdir fails with ENOENT although the
 * parent exists, as in /proc.
 */
export function createDirectory(path: string): void {
  if (isDirectory(path)) return
  const parent = dirname(path)
  if (!existsSync(parent)) createDirectory(parent)
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process may have created it since.
    if (!isDirectory(path)) throw error
  }
}

/**
 * Whether a path exists. Throws the error of the system if that is not known, such as EACCES, where
 * `existsSync` returns false.
 */
export const pathExists = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false }) !== undefined

const isDirectory = (path: string) =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

/** Returns the canonical path of a file, which may not exist yet. */
export function canonicalPath(path: string): string {
  if (existsSync(path)) return realpathSync(path)
  const folder = dirname(resolve(path))
  return existsSync(folder) ? join(realpathSync(folder), basename(path)) : resolve(path)
}
