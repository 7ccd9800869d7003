import { rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Random } from '../../platform/random.ts'
import { type FormRules, type ReceivedForm, receiveForm } from './multipart-form.ts'
import { type Incoming, makeFolder } from './store-upload.ts'

/** A form with a file that is stored on disk while its request is processed. */
export type Upload = ReceivedForm & {
  /** Path of the file, which exists until `discard`. */
  readonly path: string
  discard(): Promise<void>
}

/** Returns a function that receives forms with a file into a folder of the data directory. */
export const uploads =
  (dataDir: string, random: Random) =>
  /** Throws UploadFault or an error of `admit`; nothing is left of the file then. */
  (request: Incoming, rules: FormRules): Promise<Upload> =>
    storeTemporary(dataDir, random, path => receiveForm(request, path, rules))

type Temporary = { readonly path: string; discard(): Promise<void> }

/** Creates a file with `write` in a folder of the data directory; nothing is left of it if it fails. */
export async function storeTemporary<T extends object>(
  dataDir: string,
  random: Random,
  write: (path: string) => Promise<T>,
): Promise<T & Temporary> {
  const folder = uploadFolder(dataDir)
  makeFolder(folder)
  const path = join(folder, random.token(FILE_NAME_LENGTH))
  const discard = () => rm(path, { force: true })
  try {
    return { path, discard, ...(await write(path)) }
  } catch (error) {
    await discard()
    throw error
  }
}

/** Deletes uploads that a killed process left; call it before the first upload. */
export function clearUploads(dataDir: string): void {
  rmSync(uploadFolder(dataDir), { recursive: true, force: true })
}

const FILE_NAME_LENGTH = 20

const uploadFolder = (dataDir: string) => join(dataDir, 'uploads')
