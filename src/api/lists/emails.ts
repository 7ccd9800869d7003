import type { Row } from '../../jobs/import/load-job.ts'
import { formatNumber } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { ApiError } from '../errors/api-error.ts'
import { formatPath } from '../errors/fault.ts'
import { checkNames } from '../errors/known-names.ts'

/** At most so many are answered at once (section 8 of the interface). */
export const INSTANT_MAX = 10
/** What one request for a bulk verification takes; the interface leaves it open. */
export const BULK_MAX = 10_000
/** Section 8 of the interface. */
export const BATCH_MAX = 50_000
/** Rows of a file. */
export const FILE_ROWS_MAX = 1_000_000

/** The addresses of a request, whatever they are like; throws ApiError for what is no list of strings. */
export function readEmails(emails: unknown, max: number): string[] {
  const list = readList('emails', emails, max)
  const wrong = list.findIndex(email => typeof email !== 'string')
  if (wrong !== -1) throw notText(['emails', wrong], list[wrong])
  return list as string[]
}

/** The rows of a batch: `emails`, or `items` that each carry an id. */
export function readBatch({ emails, items }: { emails?: unknown; items?: unknown }): Row[] {
  if (emails !== undefined && items !== undefined) {
    throw new ApiError(
      'invalid_request',
      'The body has both "emails" and "items". Give one of the two: items is for addresses with ids.',
    )
  }
  if (items === undefined) return readEmails(emails, BATCH_MAX).map(text => ({ text }))
  return readList('items', items, BATCH_MAX).map(readItem)
}

/** A few hundred characters carry any id; what is longer belongs in a database of the caller. */
const ID_LENGTH_MAX = 256

function readItem(item: unknown, index: number): Row {
  const path = ['items', index]
  if (typeof item !== 'object' || item === null) {
    throw new ApiError(
      'invalid_request',
      `"${formatPath(path)}" is no object with an "email" and an "id".`,
    )
  }
  checkNames('body', Object.keys(item), ['email', 'id'], formatPath(path))
  const { email, id = null } = item as { email?: unknown; id?: unknown }
  if (typeof email !== 'string') throw notText([...path, 'email'], email)
  if (id === null) return { text: email, cells: null }
  if (typeof id !== 'string' && typeof id !== 'number') throw notText([...path, 'id'], id)
  if (String(id).length > ID_LENGTH_MAX) {
    throw new ApiError(
      'invalid_request',
      `"${formatPath([...path, 'id'])}" is longer than ${ID_LENGTH_MAX} characters, which is the most an id may have.`,
    )
  }
  return { text: email, cells: JSON.stringify(String(id)) }
}

function readList(field: 'emails' | 'items', given: unknown, max: number): readonly unknown[] {
  if (!Array.isArray(given)) {
    throw new ApiError(
      'emails_required',
      `The body needs "${field}", an array, such as ${EXAMPLES[field]}.`,
    )
  }
  if (given.length === 0) throw emptyList(`"${field}" is empty.`)
  if (given.length > max) throw tooMany(given.length, max)
  return given
}

const EXAMPLES = {
  emails: '{"emails": ["user@example.com"]}',
  items: '{"items": [{"email": "user@example.com", "id": "1"}]}',
}

export const emptyList = (what: string) =>
  new ApiError('empty_list', `${what} Give at least one address.`)

/** How many addresses there are, how many may be, and where more may go. */
export function tooMany(given: number, max: number): ApiError {
  const [count, limit] = [given, max].map(formatNumber)
  const where = BIGGER.find(([, holds]) => given <= holds)?.[0]
  return new ApiError(
    'too_many_emails',
    `There are ${count} addresses; this path takes at most ${limit}. ${
      where === undefined ? 'Divide the list' : `${where} takes as many`
    }.`,
  )
}

const BIGGER: readonly [path: string, max: number][] = [
  ['POST /v1/verify/batch', BATCH_MAX],
  ['POST /v1/verify/file', FILE_ROWS_MAX],
]

function notText(path: readonly PropertyKey[], given: unknown): ApiError {
  const shown = sanitizeText(JSON.stringify(given) ?? 'missing', 40)
  return new ApiError('invalid_request', `"${formatPath(path)}" is ${shown}; it must be a string.`)
}
