import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import type { CustomListName } from '../../engine/address/custom-list-entry.ts'
import { keysInFile } from '../../engine/address/custom-list-file.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import type { SourceEntries } from './source.ts'

/** The first line of a file that ev wrote, and may replace. */
const MARK = '# Written by ev lists update. Changes are lost with the next update.'

/** The entries of the list that was written last. Throws EvError where the file is not of ev. */
export function readWritten(list: CustomListName, file: string): ReadonlySet<string> {
  if (!existsSync(file)) return new Set()
  if (statSync(file).isFile() && readFileSync(file, 'utf8').startsWith(MARK)) {
    return new Set(keysInFile(list, file))
  }
  throw new EvError(
    'cannot_write',
    `${file} was not written by ev lists update, so it stays. Rename it, and name it as a source.`,
  )
}

/** Replaces the file atomically: a reader sees the old list or the new one, even after a crash. */
export function writeList(
  named: string,
  keys: readonly string[],
  sources: readonly Pick<SourceEntries, 'source'>[],
  now: Date,
): void {
  // Replace the target of a symbolic link, not the link.
  const file = existsSync(named) ? realpathSync(named) : named
  const partial = `${file}.${process.pid}.partial`
  const comments = [MARK, `# ${now.toISOString()}`, ...sources.map(({ source }) => `# ${source}`)]
  try {
    const descriptor = openSync(partial, 'w')
    try {
      writeFileSync(descriptor, `${[...comments, ...keys].join('\n')}\n`)
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    renameSync(partial, file)
  } catch (cause) {
    rmSync(partial, { force: true })
    const why = errorMessage(cause)
    throw new EvError('cannot_write', `${named} cannot be written: ${why}.`, { cause })
  }
}
