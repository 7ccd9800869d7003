import { rm } from 'node:fs/promises'
import { pipeline, Readable } from 'node:stream'
import type { ReadableStream as NodeReadableStream } from 'node:stream/web'
import { createGunzip } from 'node:zlib'
import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { ListContent } from '../../formats/list-content.ts'
import { openContent } from '../../formats/open-content.ts'
import { AROUND_BYTES_MAX, type Upload, uploads } from '../../jobs/import/multipart-form.ts'
import {
  FILE_BYTES_MAX,
  type Incoming,
  storeBytes,
  UploadFault,
} from '../../jobs/import/store-upload.ts'
import { formatNumber } from '../../platform/format.ts'
import type { Random } from '../../platform/random.ts'
import { Semaphore } from '../../platform/semaphore.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Env } from '../context.ts'
import type { ApiError } from '../errors/api-error.ts'
import { checkNames } from '../errors/known-names.ts'
import { invalidRequest, requestError } from '../errors/request-errors.ts'
import { isGzip } from '../middleware/body.ts'
import { FileRequest } from '../schemas/verify.ts'
import { parseMetadataField } from './job-options.ts'
import type { ListOptionFields } from './queue.ts'

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

/** Checks the fields that were received: their names, and their lengths by the schema. */
function checkFields(fields: Upload['fields']): void {
  checkNames('form', [...fields.keys()], FIELDS)
  for (const [name, text] of fields) {
    const max = LENGTHS_MAX.get(name)
    if (max === undefined || text.length <= max) continue
    const message = `"${name}" has ${formatNumber(text.length)} characters; it must have at most ${formatNumber(max)}.`
    throw invalidRequest(message)
  }
}

/** Maximum lengths of the fields that are texts. */
const LENGTHS_MAX = new Map(
  Object.entries(FileRequest.shape).flatMap(([name, field]) => {
    const text = 'unwrap' in field ? field.unwrap() : field
    return text instanceof z.ZodString && text.maxLength !== null ? [[name, text.maxLength]] : []
  }),
)

export function toApiError(fault: UploadFault): ApiError {
  const { kind, message, cause } = fault
  switch (kind) {
    case 'no-form':
      return requestError('file_form_required')
    case 'too-large':
      return requestError('file_too_large', { fault: `The file has ${message}.` })
    case 'not-stored':
      return requestError('file_not_stored', { cause })
    case 'cut-off':
      return requestError('file_cut_off')
    case 'malformed':
    case 'several-files':
      return requestError('file_form_invalid', { fault: message, cause })
    default:
      return kind satisfies never
  }
}

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
export const EXPANDED_BYTES_MAX = 512 * 1024 * 1024

/**
 * Converted files at the same time: bounds the disk, memory and work of hostile uploads. An account
 * converts one after the other, so that others do not wait behind all of its files.
 */
const CONVERSIONS_MAX = 2

/**
 * Returns a function that runs `use` with the text of an upload. The text is on the disk until
 * then, because it is read several times.
 */
export function textUploads() {
  const conversions = new Semaphore(CONVERSIONS_MAX)
  const queue = queueByAccount()
  return async <T>(
    c: Context<Env>,
    upload: ListUpload,
    use: (text: TextUpload) => Promise<T>,
  ): Promise<T> => {
    const content = await openContent(upload.path, {
      sheet: upload.options.sheet || undefined,
      expandedBytesMax: EXPANDED_BYTES_MAX,
    })
    if (content.format === 'text') return await use({ ...upload, content })
    const path = `${upload.path}.text`
    const releaseAccount = await queue(c.get('caller').account.id)
    const release = await conversions.acquire()
    try {
      await storeText(content, path)
      return await use({ ...upload, path, content })
    } finally {
      await rm(path, { force: true })
      release()
      releaseAccount()
    }
  }
}

/** Returns a function that waits until nothing else of an account runs, and returns the release. */
function queueByAccount(): (accountId: string) => Promise<() => void> {
  const queues = new Map<string, Semaphore>()
  return async accountId => {
    const queue = queues.get(accountId) ?? new Semaphore(1)
    queues.set(accountId, queue)
    const release = await queue.acquire()
    return () => {
      release()
      if (queue.isFree) queues.delete(accountId)
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

/** Reads a boolean form field; null if it is omitted. */
export function readFlag(fields: Upload['fields'], field: string): boolean | null {
  const text = fields.get(field)
  if (text === undefined || text === '') return null
  if (text === 'true' || text === '1') return true
  if (text === 'false' || text === '0') return false
  const excerpt = sanitizeText(text, 40)
  throw invalidRequest(`"${field}" is ${JSON.stringify(excerpt)}; it must be true or false.`)
}

/** Options of a file, from a form or a JSON body. */
export type FileOptions = ListOptionFields & {
  /** Name or number from 1. Like the other texts, it may be empty, which means omitted. */
  readonly column?: string | number | undefined
  readonly sheet?: string | undefined
  readonly header?: boolean | null | undefined
  readonly encoding?: string | undefined
  readonly all_addresses?: boolean | null | undefined
  readonly keep_external?: boolean | null | undefined
  readonly external_date?: string | undefined
  readonly name?: string | null | undefined
  readonly deduplicate?: boolean | null | undefined
}

/** Reads the options of a file from the fields of its form. */
export const readFileOptions = (fields: Upload['fields']): FileOptions => ({
  column: fields.get('column'),
  sheet: fields.get('sheet'),
  header: readFlag(fields, 'header'),
  encoding: fields.get('encoding'),
  all_addresses: readFlag(fields, 'all_addresses'),
  keep_external: readFlag(fields, 'keep_external'),
  external_date: fields.get('external_date'),
  name: fields.get('name'),
  deduplicate: readFlag(fields, 'deduplicate'),
  check_smtp: readFlag(fields, 'check_smtp'),
  force_refresh: readFlag(fields, 'force_refresh'),
  notify: readFlag(fields, 'notify'),
  metadata: parseMetadataField(fields.get('metadata')),
  webhook_url: fields.get('webhook_url'),
})
