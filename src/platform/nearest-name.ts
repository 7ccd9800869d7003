import { typoDistance } from './typo-distance.ts'

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
