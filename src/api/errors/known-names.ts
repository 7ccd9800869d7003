import { findNearestName } from '../../platform/nearest-name.ts'
import { sanitizeText } from '../../platform/text.ts'
import { invalidRequest } from './request-errors.ts'

/** Parts of a request and the words for their names in messages. */
const PARTS = {
  body: { label: 'The body', noun: 'field' },
  form: { label: 'The form', noun: 'field' },
  query: { label: 'The query', noun: 'parameter' },
} as const

export type Part = keyof typeof PARTS

/** Enough of a name to recognize it. */
const EXCERPT_LENGTH_MAX = 60

/**
 * Throws ApiError for the first unknown name. The message has that name, the nearest known name,
 * and all known names. `parent` is the path of the names within the body, such as `items[0]`.
 */
export function checkNames(
  part: Part,
  names: readonly string[],
  known: readonly string[],
  parent = '',
): void {
  const name = names.find(one => !known.includes(one))
  if (name === undefined) return
  const { label, noun } = PARTS[part]
  const excerpt = sanitizeText(JSON.stringify(joinPath(parent, name)), EXCERPT_LENGTH_MAX)
  const nearest = findNearestName(name, known)
  const hint = nearest === null ? '' : ` Did you mean "${nearest}"?`
  const owner = parent === '' ? label : `"${parent}"`
  const allowed = known.length === 0 ? `no ${noun}s` : known.join(', ')
  const message = `${excerpt} is not a known ${noun}.${hint} ${owner} takes ${allowed}.`
  throw invalidRequest(message)
}

/** Joins a field name to the path of its parent. */
const joinPath = (parent: string, name: string) => (parent === '' ? name : `${parent}.${name}`)
