import { sanitizeText } from '../../platform/text.ts'
import { ApiError } from '../errors/api-error.ts'
import { parseMetadataField } from './metadata.ts'
import type { ListOptionFields } from './queue.ts'
import type { Upload } from './upload.ts'

/** Reads a boolean form field; null if it is omitted. */
export function readFlag(fields: Upload['fields'], field: string): boolean | null {
  const text = fields.get(field)
  if (text === undefined || text === '') return null
  if (text === 'true' || text === '1') return true
  if (text === 'false' || text === '0') return false
  const excerpt = sanitizeText(text, 40)
  throw new ApiError(
    'invalid_request',
    `"${field}" is ${JSON.stringify(excerpt)}; it must be true or false.`,
  )
}

/** Options of a file, from a form or a JSON body. */
export type FileOptions = ListOptionFields & {
  /** Name or number from 1. Like the other texts, it may be empty, which means omitted. */
  readonly column?: string | number | undefined
  readonly sheet?: string | undefined
  readonly header?: boolean | null | undefined
  readonly encoding?: string | undefined
  readonly name?: unknown
  readonly deduplicate?: boolean | null | undefined
}

/** Reads the options of a file from the fields of its form. */
export const readFileOptions = (fields: Upload['fields']): FileOptions => ({
  column: fields.get('column'),
  sheet: fields.get('sheet'),
  header: readFlag(fields, 'header'),
  encoding: fields.get('encoding'),
  name: fields.get('name'),
  deduplicate: readFlag(fields, 'deduplicate'),
  check_smtp: readFlag(fields, 'check_smtp'),
  force_refresh: readFlag(fields, 'force_refresh'),
  notify: readFlag(fields, 'notify'),
  metadata: parseMetadataField(fields.get('metadata')),
  webhook_url: fields.get('webhook_url'),
})
