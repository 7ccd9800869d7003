import { EvError } from '../platform/error.ts'
import { type Contents, contentsOf, copyFile } from './copy-file.ts'

/** What the process of `runCopyProcess` sends: the row counts, or why there are none. */
export type CopyReport = { readonly contents: Contents } | { readonly fault: string }

/**
 * The process that copies a database and checks the copy: `copy-worker.ts FILE [URL]`. Without a URL
 * it only checks the file.
 */
function run([file = '', url]: readonly string[]): CopyReport {
  try {
    if (url !== undefined) copyFile(url, file)
    return { contents: contentsOf(file) }
  } catch (error) {
    if (error instanceof EvError) return { fault: error.message }
    return { fault: error instanceof Error ? error.message : String(error) }
  }
}

process.send?.(run(process.argv.slice(2)), () => process.disconnect())
