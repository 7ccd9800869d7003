import { EvError, errorMessage } from '../platform/error.ts'
import { type Contents, contentsOf, copyFile } from './copy-file.ts'

/** What the process of `runCopyProcess` sends: the row counts, or why there are none. */
export type CopyReport = { readonly contents: Contents } | CopyFault

export type CopyFault = {
  readonly fault: string
  /** Code of SQLite or the system; null for a sentence that needs no explanation. */
  readonly code: string | null
}

/**
 * The process that copies a database and checks the copy: `copy-worker.ts FILE [URL]`. Without a URL
 * it only checks the file.
 */
function run([file = '', url]: readonly string[]): CopyReport {
  try {
    if (url !== undefined) copyFile(url, file)
    return { contents: contentsOf(file) }
  } catch (error) {
    const { code } = error as { readonly code?: unknown }
    return { fault: errorMessage(error), code: error instanceof EvError ? null : `${code}` }
  }
}

process.send?.(run(process.argv.slice(2)), () => process.disconnect())
