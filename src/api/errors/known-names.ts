import { typoDistance } from '../../engine/address/typo-distance.ts'
import { sanitizeText } from '../../platform/text.ts'
import { ApiError } from './api-error.ts'

/** Where a name was given, and what such names are called in messages. */
const PARTS = {
  body: { whole: 'The body', one: 'field' },
  form: { whole: 'The form', one: 'field' },
  query: { whole: 'The query', one: 'parameter' },
} as const

export type Part = keyof typeof PARTS

/** A name is shown to be found again, not whole. */
const SHOWN_LENGTH_MAX = 60

/**
 * Throws ApiError for the first name that is not known: it says the name, the nearest known one, and all that are
 * known. `place` is where the names stand within the body, such as `items[0]`.
 */
export function checkNames(
  part: Part,
  given: readonly string[],
  known: readonly string[],
  place = '',
): void {
  const name = given.find(one => !known.includes(one))
  if (name === undefined) return
  const { whole, one } = PARTS[part]
  const shown = sanitizeText(JSON.stringify(joinPath(place, name)), SHOWN_LENGTH_MAX)
  const nearest = findNearestName(name, known)
  const meant = nearest === null ? '' : ` Did you mean "${nearest}"?`
  const owner = place === '' ? whole : `"${place}"`
  const taken = known.length === 0 ? `no ${one}s` : known.join(', ')
  const sentence = `${shown} is not a known ${one}.${meant} ${owner} takes ${taken}.`
  throw new ApiError('invalid_request', sentence)
}

/** The name of a field with those that it stands in. */
export const joinPath = (place: string, name: string) => (place === '' ? name : `${place}.${name}`)

/** If more than a third of its letters differ, a name is more likely another word than a slip. */
const DISTANCE_SHARE_MAX = 1 / 3
/** Longer names are not compared: the longest known one has 21 characters. */
const NAME_LENGTH_MAX = 64

/** The known name that a misspelt one most likely means; null: none is near. */
export function findNearestName(given: string, known: readonly string[]): string | null {
  if (given.length > NAME_LENGTH_MAX) return null
  const limit = Math.max(1, given.length * DISTANCE_SHARE_MAX)
  const [best] = known
    .map(name => ({
      name,
      distance: typoDistance(normalizeName(given), normalizeName(name), limit),
    }))
    .toSorted((a, b) => a.distance - b.distance)
  return best === undefined || best.distance > limit ? null : best.name
}

/** `webhookUrl` and `Webhook-URL` mean `webhook_url`. */
const normalizeName = (name: string) => name.toLowerCase().replace(/[_-]/g, '')
