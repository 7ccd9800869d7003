import { rm } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { ConnectionSemaphore } from '../../engine/probe/connection-semaphore.ts'
import { type ListContent, openContent } from '../../formats/open-content.ts'
import { storeBytes } from '../../jobs/upload/store-upload.ts'
import { UploadFault } from '../../jobs/upload/upload-error.ts'
import type { FileOptions } from './file-options.ts'
import { toApiError } from './upload.ts'

/** A file that was uploaded or downloaded, with its options. */
export type ListUpload = {
  readonly path: string
  /** Empty if it has none. */
  readonly fileName: string
  readonly options: FileOptions
}

/** An upload whose file is text; a workbook and a compressed file were converted. */
export type TextUpload = ListUpload & { readonly content: ListContent }

/** Maximum size of a compressed list as text: a million rows of 500 bytes. */
const EXPANDED_BYTES_MAX = 512 * 1024 * 1024

/** Converted files at the same time: bounds the disk, memory and work of hostile uploads. */
const CONVERSIONS_MAX = 2

/**
 * Returns a function that runs `use` with the text of an upload. The text is on the disk meanwhile,
 * because it is read several times.
 */
export function textUploads() {
  const conversions = new ConnectionSemaphore(CONVERSIONS_MAX)
  return async <T>(upload: ListUpload, use: (text: TextUpload) => Promise<T>): Promise<T> => {
    const content = await openContent(upload.path, {
      sheet: upload.options.sheet || undefined,
      expandedBytesMax: EXPANDED_BYTES_MAX,
    })
    if (content.format === 'text') return await use({ ...upload, content })
    const path = `${upload.path}.text`
    const release = await conversions.acquire()
    try {
      await storeText(content, path)
      return await use({ ...upload, path, content })
    } finally {
      await rm(path, { force: true })
      release()
    }
  }
}

async function storeText(content: ListContent, path: string): Promise<void> {
  try {
    await storeBytes(Readable.from(content.read()), path, () => {})
  } catch (error) {
    throw error instanceof UploadFault ? toApiError(error) : error
  }
}
