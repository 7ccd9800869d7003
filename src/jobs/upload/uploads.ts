import { rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Random } from '../../platform/random.ts'
import { type FormRules, type ReceivedForm, receiveForm } from './multipart-form.ts'
import { type Incoming, makeFolder } from './store-upload.ts'

/** A form with a file, which lies on the disk while its request is answered. */
export type Upload = ReceivedForm & {
  /** Where the file lies until `discard`. */
  readonly path: string
  discard(): Promise<void>
}

/** Takes forms with a file into a folder of the data directory; gives what a form is received with. */
export function uploads(dataDir: string, random: Random) {
  const folder = folderOf(dataDir)
  /** Throws UploadFault, or what `admit` threw; then nothing of the file is left. */
  return async (request: Incoming, rules: FormRules): Promise<Upload> => {
    makeFolder(folder)
    const path = join(folder, random.token(FILE_NAME_LENGTH))
    const discard = () => rm(path, { force: true })
    try {
      return { path, discard, ...(await receiveForm(request, path, rules)) }
    } catch (error) {
      await discard()
      throw error
    }
  }
}

/** Removes what a process that was killed left of uploads; call it before there are any. */
export function clearUploads(dataDir: string): void {
  rmSync(folderOf(dataDir), { recursive: true, force: true })
}

const FILE_NAME_LENGTH = 20

const folderOf = (dataDir: string) => join(dataDir, 'uploads')
