import { sanitizeText } from '../platform/text.ts'
import type { Metadata } from './job-store.ts'

/** Limits of the metadata of a job, which are those of Stripe: it holds IDs, not documents. */
export const METADATA_KEYS_MAX = 50
export const METADATA_KEY_LENGTH_MAX = 40
export const METADATA_VALUE_LENGTH_MAX = 500

type Checked = { readonly metadata: Metadata } | { readonly fault: string }

/** Checks the metadata of a job. A fault is the end of a sentence that begins with its name. */
export function checkMetadata(pairs: Readonly<Record<string, unknown>>): Checked {
  const entries = Object.entries(pairs)
  if (entries.length > METADATA_KEYS_MAX) {
    return { fault: `has ${entries.length} keys; the maximum is ${METADATA_KEYS_MAX}.` }
  }
  for (const [key, value] of entries) {
    const fault = entryFault(key, value)
    if (fault !== null) return { fault }
  }
  return { metadata: pairs as Metadata }
}

function entryFault(key: string, value: unknown): string | null {
  if (!isKey(key)) {
    return `has the key ${excerpt(key)}; a key has 1 to ${METADATA_KEY_LENGTH_MAX} characters and no [ or ].`
  }
  if (typeof value !== 'string' || !isText(value) || value.length > METADATA_VALUE_LENGTH_MAX) {
    return `has ${excerpt(value)} under ${excerpt(key)}; a value is a string of at most ${METADATA_VALUE_LENGTH_MAX} characters.`
  }
  return null
}

/** Without brackets, which enclose the key in the query of `GET /v1/jobs`. */
const isKey = (key: string) =>
  key !== '' && key.length <= METADATA_KEY_LENGTH_MAX && isText(key) && !/[[\]]/.test(key)

/** PostgreSQL reads neither NUL nor half of a surrogate pair from JSON. */
const isText = (text: string) => text.isWellFormed() && !text.includes('\0')

const excerpt = (value: unknown) => sanitizeText(JSON.stringify(value), 60)
