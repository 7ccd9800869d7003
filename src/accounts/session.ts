import { DAY, HOUR } from '../platform/clock.ts'
import type { Random } from '../platform/random.ts'
import { hashSecret } from './key.ts'

/** A week: who works with the dashboard signs in once in it, and a cookie that was stolen is of no use for longer. */
export const SESSION_MAX_MS = 7 * DAY

/** A night: what was left open on a machine that others use is closed the next morning. */
export const SESSION_IDLE_MS = 12 * HOUR

/** Sessions of one key at a time: enough for a team that shares one; whoever signs in in a loop ends their own. */
export const SESSIONS_MAX = 50

/** What a browser keeps of its session, and what is kept here: whoever reads the database cannot be anybody. */
export type SessionToken = { readonly token: string; readonly hash: string }

export function newSessionToken(random: Random): SessionToken {
  const token = random.token(TOKEN_LENGTH)
  return { token, hash: hashToken(token) }
}

/** What is kept of a token: it has chance enough that nothing slower is needed, as with keys. */
export const hashToken = (token: string): string => hashSecret(token)

/**
 * What our own pages send along with what changes something, and the page of somebody else cannot know. It follows from
 * the token, so that it is kept nowhere; the token does not follow from it.
 */
export const csrfToken = (token: string): string => hashSecret(`csrf ${token}`)

/** 206 bits of chance. */
const TOKEN_LENGTH = 40
