import type { Metadata } from '../../jobs/job-store.ts'
import { sanitizeText } from '../../platform/text.ts'
import { ApiError } from '../errors/api-error.ts'

/** Limits of the metadata of a job, which are those of Stripe: it holds IDs, not documents. */
export const METADATA_KEYS_MAX = 50
const METADATA_KEY_LENGTH_MAX = 40
export const METADATA_VALUE_LENGTH_MAX = 500

/** Reads the metadata of a job. Throws ApiError if it is not an object of short strings. */
export function readMetadata(metadata: unknown): Metadata {
  if (metadata === undefined || metadata === null) return {}
  if (typeof metadata !== 'object' || Array.isArray(metadata)) throw notAnObject(metadata)
  const entries = Object.entries(metadata)
  if (entries.length > METADATA_KEYS_MAX) {
    throw invalid(`"metadata" has ${entries.length} keys; the maximum is ${METADATA_KEYS_MAX}.`)
  }
  for (const [key, value] of entries) checkEntry(key, value)
  return metadata as Metadata
}

/** Reads the metadata in a form field, which is JSON. */
export function parseMetadataField(text: string | undefined): unknown {
  if (text === undefined || text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    throw notAnObject(text)
  }
}

function checkEntry(key: string, value: unknown): void {
  if (!isKey(key)) {
    throw invalid(
      `"metadata" has the key ${excerpt(key)}; a key has 1 to ${METADATA_KEY_LENGTH_MAX} characters and no [ or ].`,
    )
  }
  if (typeof value !== 'string' || !isText(value) || value.length > METADATA_VALUE_LENGTH_MAX) {
    throw invalid(
      `"metadata" has ${excerpt(value)} under ${excerpt(key)}; a value is a string of at most ${METADATA_VALUE_LENGTH_MAX} characters.`,
    )
  }
}

/** Without brackets, which enclose the key in the query of `GET /v1/jobs`. */
const isKey = (key: string) =>
  key !== '' && key.length <= METADATA_KEY_LENGTH_MAX && isText(key) && !/[[\]]/.test(key)

/** PostgreSQL reads neither NUL nor half of a surrogate pair from JSON. */
const isText = (text: string) => text.isWellFormed() && !text.includes('\0')

const notAnObject = (value: unknown) =>
  invalid(`"metadata" is ${excerpt(value)}; it must be an object such as {"customer": "42"}.`)

const excerpt = (value: unknown) => sanitizeText(JSON.stringify(value), 60)

const invalid = (message: string) => new ApiError('invalid_request', message)
