import type { Row } from '../../jobs/import/load-job.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { ApiError } from '../errors/api-error.ts'
import { formatPath } from '../errors/fault.ts'
import { checkNames } from '../errors/known-names.ts'
import { invalidRequest, requestError } from '../errors/request-errors.ts'

/** Longest list that is answered at once (section 8 of the interface). */
export const INSTANT_MAX = 10
/** Longest list of a bulk request; the interface leaves it open. */
export const BULK_MAX = 10_000
/** Longest batch (section 8 of the interface). */
export const BATCH_MAX = 50_000
/** Maximum of rows in a file. */
export const FILE_ROWS_MAX = 1_000_000

/**
 * Reads the addresses of a request without validating them. Throws ApiError if they are not a list
 * of strings.
 */
export function readEmails(
  emails: unknown,
  max: number,
  field: 'emails' | 'input' = 'emails',
): string[] {
  const list = readList(field, emails, max)
  const invalid = list.findIndex(email => typeof email !== 'string')
  if (invalid !== -1) throw notText([field, invalid], list[invalid])
  return list as string[]
}

/** Reads the rows of a batch: `emails`, or `items` that each have an ID. */
export function readBatch({ emails, items }: { emails?: unknown; items?: unknown }): Row[] {
  if (emails !== undefined && items !== undefined) {
    throw invalidRequest(
      'The body has both "emails" and "items". Give one of the two: "items" is for addresses with IDs.',
    )
  }
  if (items === undefined) return readEmails(emails, BATCH_MAX).map(text => ({ text }))
  return readList('items', items, BATCH_MAX).map(readItem)
}

/** Enough for any ID; longer data belongs in a database of the caller. */
const ID_LENGTH_MAX = 256

function readItem(item: unknown, index: number): Row {
  const path = ['items', index]
  if (typeof item !== 'object' || item === null) {
    throw invalidRequest(`"${formatPath(path)}" is not an object with "email" and "id".`)
  }
  checkNames('body', Object.keys(item), ['email', 'id'], formatPath(path))
  const { email, id = null } = item as { email?: unknown; id?: unknown }
  if (typeof email !== 'string') throw notText([...path, 'email'], email)
  if (id === null) return { text: email, cells: null }
  if (typeof id !== 'string' && typeof id !== 'number') throw notText([...path, 'id'], id)
  if (String(id).length > ID_LENGTH_MAX) {
    throw invalidRequest(
      `"${formatPath([...path, 'id'])}" is longer than ${ID_LENGTH_MAX} characters, which is the maximum for an ID.`,
    )
  }
  return { text: email, cells: JSON.stringify(String(id)) }
}

function readList(field: keyof typeof EXAMPLES, value: unknown, max: number): readonly unknown[] {
  if (!Array.isArray(value)) {
    throw requestError('emails_missing', { field, example: EXAMPLES[field] })
  }
  if (value.length === 0) throw requestError('no_address_given', { what: `"${field}" is empty.` })
  if (value.length > max) throw tooMany(value.length, max)
  return value
}

const EXAMPLES = {
  emails: '{"emails": ["user@example.com"]}',
  input: '{"input": ["user@example.com"]}',
  items: '{"items": [{"email": "user@example.com", "id": "1"}]}',
}

/** Reports the length of the list, the limit, and the endpoint that takes longer lists. */
function tooMany(length: number, max: number): ApiError {
  const endpoint = LARGER_ENDPOINTS.find(([, most]) => length <= most)?.[0]
  return requestError('list_too_long', { count: length, max, endpoint })
}

const LARGER_ENDPOINTS: readonly [path: string, max: number][] = [
  ['POST /v1/verify/batch', BATCH_MAX],
  ['POST /v1/verify/file', FILE_ROWS_MAX],
]

function notText(path: readonly PropertyKey[], value: unknown): ApiError {
  const excerpt = sanitizeText(JSON.stringify(value) ?? 'missing', 40)
  return invalidRequest(`"${formatPath(path)}" is ${excerpt}; it must be a string.`)
}
