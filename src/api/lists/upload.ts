import { pipeline, Readable } from 'node:stream'
import type { ReadableStream as NodeReadableStream } from 'node:stream/web'
import { createGunzip } from 'node:zlib'
import { AROUND_BYTES_MAX } from '../../jobs/upload/multipart-form.ts'
import { FILE_BYTES_MAX, type Incoming } from '../../jobs/upload/store-upload.ts'
import { UploadFault } from '../../jobs/upload/upload-error.ts'
import { type Upload, uploads } from '../../jobs/upload/uploads.ts'
import type { Random } from '../../platform/random.ts'
import { ApiError } from '../errors/api-error.ts'
import { checkNames } from '../errors/known-names.ts'
import { isGzip } from '../middleware/body.ts'
import { FileRequest } from '../schemas/verify.ts'

export type { Upload }

export const FORM_BYTES_MAX = FILE_BYTES_MAX + AROUND_BYTES_MAX

/** Returns a parser of multipart forms with a file, which refuses unknown fields. */
export function fileForms(dataDir: string, random: Random, fileBytesMax = FILE_BYTES_MAX) {
  const parse = uploads(dataDir, random)
  return async (sent: Request): Promise<Upload> => {
    const request = expandRequest(sent)
    const rules = { fileFields: ['file'], fileBytesMax, admit: checkFields } as const
    try {
      const upload = await parse(request, rules)
      await checkRest(upload)
      return upload
    } catch (error) {
      throw error instanceof UploadFault ? toApiError(error) : error
    }
  }
}

/** The form counts against its limit as it is after the expansion. */
function expandRequest(request: Request): Incoming {
  const { body, headers, signal } = request
  if (body === null || !isGzip(headers.get('Content-Encoding'))) return request
  const gunzip = createGunzip()
  const expanded = pipeline(Readable.fromWeb(body as NodeReadableStream), gunzip, () => {})
  return { body: Readable.toWeb(expanded) as Request['body'], headers, signal }
}

/** Checks the fields that follow the file in the form. */
async function checkRest({ fields, discard }: Upload): Promise<void> {
  try {
    checkFields(fields)
  } catch (error) {
    await discard()
    throw error
  }
}

const FIELDS = Object.keys(FileRequest.shape)

const checkFields = (fields: Upload['fields']) => checkNames('form', [...fields.keys()], FIELDS)

/** A full disk usually recovers within seconds. */
const STORE_RETRY_S = 5

const CURL_HINT = ', as curl does with -F file=@list.csv.'

export function toApiError(fault: UploadFault): ApiError {
  const { kind, message, cause } = fault
  switch (kind) {
    case 'no-form':
      return new ApiError(
        'unsupported_media_type',
        `Send the file as multipart/form-data${CURL_HINT}`,
      )
    case 'too-large':
      return new ApiError('payload_too_large', `The file has ${message}. Split it.`)
    case 'not-stored': {
      const sentence = 'The file cannot be stored right now. Try again.'
      return new ApiError('service_unavailable', sentence, { retryAfterS: STORE_RETRY_S, cause })
    }
    case 'cut-off':
      return new ApiError('request_timeout', 'The request body is incomplete.')
    case 'malformed':
      return new ApiError(
        'invalid_request',
        `The form cannot be read: ${message}. Send multipart/form-data${CURL_HINT}`,
        { cause },
      )
    default:
      return kind satisfies never
  }
}
