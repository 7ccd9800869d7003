import { DAY, HOUR } from '../platform/clock.ts'
import type { Random } from '../platform/random.ts'
import { hashSecret } from './key.ts'

/** A week: users sign in once a week, and a stolen cookie is useless after it. */
export const SESSION_MAX_MS = 7 * DAY

/** Overnight: a session left open on a shared machine has ended the next morning. */
export const SESSION_IDLE_MS = 12 * HOUR

/**
 * Maximum sessions of a key: enough for a team that shares one. The oldest end first, so a client
 * that signs in in a loop ends its own.
 */
export const SESSIONS_MAX = 50

/**
 * A token for the browser's cookie and the hash that is stored. The token cannot be derived from
 * the database.
 */
type SessionToken = { readonly token: string; readonly hash: string }

export function newSessionToken(random: Random): SessionToken {
  const token = random.token(TOKEN_LENGTH)
  return { token, hash: hashToken(token) }
}

/**
 * The stored hash of a token. A token has enough entropy that a slow password hash is not needed.
 */
export const hashToken = (token: string): string => hashSecret(token)

/**
 * The CSRF token that the dashboard's own forms send, which another site cannot know. It is derived
 * from the session token, so it is not stored; the session token cannot be derived from it.
 */
export const csrfToken = (token: string): string => hashSecret(`csrf ${token}`)

/** 206 bits of entropy. */
const TOKEN_LENGTH = 40
