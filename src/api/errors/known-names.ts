import { typoDistance } from '../../engine/address/typo-distance.ts'
import { sanitizeText } from '../../platform/text.ts'
import { ApiError } from './api-error.ts'

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
  throw new ApiError('invalid_request', message)
}

/** Joins a field name to the path of its parent. */
export const joinPath = (parent: string, name: string) =>
  parent === '' ? name : `${parent}.${name}`

/**
 * With more than a third of its letters different, a name is probably another word and not a typo.
 */
const DISTANCE_SHARE_MAX = 1 / 3
/** Longer names are not compared: the longest known name has 21 characters. */
const NAME_LENGTH_MAX = 64

/** Returns the known name closest to a misspelled one, or null if none is close. */
export function findNearestName(input: string, known: readonly string[]): string | null {
  if (input.length > NAME_LENGTH_MAX) return null
  const limit = Math.max(1, input.length * DISTANCE_SHARE_MAX)
  const [best] = known
    .map(name => ({
      name,
      distance: typoDistance(normalizeName(input), normalizeName(name), limit),
    }))
    .toSorted((a, b) => a.distance - b.distance)
  return best === undefined || best.distance > limit ? null : best.name
}

/** Treats `webhookUrl` and `Webhook-URL` as `webhook_url`. */
const normalizeName = (name: string) => name.toLowerCase().replace(/[_-]/g, '')
