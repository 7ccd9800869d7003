import { rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Random } from '../../../base/random.ts'
import { UploadFault } from '../../../work/upload/fault.ts'
import { AROUND_BYTES_MAX, type ReceivedForm, receiveForm } from '../../../work/upload/form.ts'
import { FILE_BYTES_MAX, makeFolder } from '../../../work/upload/store-bytes.ts'
import { ApiError } from '../../error/api-error.ts'
import { checkNames } from '../../error/known-names.ts'
import { FileRequest } from '../../schema/verify.ts'

/** A form with a file, as it was received. */
export type Upload = Pick<ReceivedForm, 'fields' | 'digest'> & {
  /** Where the file lies until `discard`. */
  readonly path: string
  discard(): Promise<void>
}

export const FORM_BYTES_MAX = FILE_BYTES_MAX + AROUND_BYTES_MAX

/** Takes forms with a file into a folder of the data directory. */
export function uploads(dataDir: string, random: Random, fileBytesMax = FILE_BYTES_MAX) {
  const folder = folderOf(dataDir)
  return {
    async receive(request: Request): Promise<Upload> {
      const path = join(folder, random.token(FILE_NAME_LENGTH))
      const discard = () => rm(path, { force: true })
      try {
        const received = await receiveIn(folder, path, request, fileBytesMax)
        return { path, discard, ...received }
      } catch (error) {
        throw error instanceof UploadFault ? apiErrorOf(error) : error
      }
    },
  }
}

const FILE_NAME_LENGTH = 20

async function receiveIn(folder: string, path: string, request: Request, fileBytesMax: number) {
  makeFolder(folder)
  try {
    const rules = { fileFields: ['file'], fileBytesMax, admit: checkFields } as const
    const received = await receiveForm(request, path, rules)
    // Fields may come behind the file, too.
    checkFields(received.fields)
    return received
  } catch (error) {
    await rm(path, { force: true })
    throw error
  }
}

const FIELDS = Object.keys(FileRequest.shape)

const checkFields = (fields: Upload['fields']) => checkNames('form', [...fields.keys()], FIELDS)

/** Removes what a process that was killed left of uploads; call it before there are any. */
export function clearUploads(dataDir: string): void {
  rmSync(folderOf(dataDir), { recursive: true, force: true })
}

const folderOf = (dataDir: string) => join(dataDir, 'uploads')

/** A disk that is full is seldom so for long. */
const STORE_RETRY_S = 5

const HOW = ', as curl does with -F file=@list.csv.'

function apiErrorOf(fault: UploadFault): ApiError {
  const { kind, message, cause } = fault
  switch (kind) {
    case 'no-form':
      return new ApiError('unsupported_media_type', `Send the file as multipart/form-data${HOW}`)
    case 'too-large':
      return new ApiError('payload_too_large', `The file has ${message}. Divide it.`)
    case 'not-stored': {
      const sentence = 'The file cannot be stored now: try again'
      return new ApiError('service_unavailable', sentence, { retryAfterS: STORE_RETRY_S, cause })
    }
    case 'cut-off':
      return new ApiError('request_timeout', 'The body did not come whole')
    case 'malformed':
      return new ApiError(
        'invalid_request',
        `The form cannot be read: ${message}. Send multipart/form-data${HOW}`,
        { cause },
      )
    default:
      return kind satisfies never
  }
}
