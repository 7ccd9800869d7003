import type { Context } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import type { Env } from '../deps.ts'

/** The `__Host-` prefix binds the cookie to this host and to TLS (or to localhost). */
const NAME = '__Host-ev_session'

/** Returns the session token of the request, null if there is none. */
export const sessionToken = (c: Context<Env>): string | null => getCookie(c, NAME) ?? null

/** Sets the session cookie for `maxAgeS` seconds, unreadable to scripts and not sent cross-site. */
export function keepToken(c: Context<Env>, token: string, maxAgeS: number): void {
  setCookie(c, NAME, token, { ...HARD, maxAge: maxAgeS })
}

export function dropToken(c: Context<Env>): void {
  setCookie(c, NAME, '', { ...HARD, maxAge: 0 })
}

const DEVICE = '__Host-ev_device'

/** Returns the mark of a browser in which a person has signed in; null if there is none. */
export const deviceOf = (c: Context<Env>): string | null => getCookie(c, DEVICE) ?? null

/** Marks the browser as one in which a person has signed in. It is not a credential. */
export function keepDevice(c: Context<Env>, device: string, maxAgeS: number): void {
  setCookie(c, DEVICE, device, { ...HARD, maxAge: maxAgeS })
}

const HARD = { path: '/', secure: true, httpOnly: true, sameSite: 'Strict' } as const

const OIDC = '__Host-ev_oidc'

/** Keeps the state of a sign-in with the identity provider until the browser comes back. */
export function keepOidcState(c: Context<Env>, sealed: string, maxAgeS: number): void {
  setCookie(c, OIDC, sealed, { ...LAX, maxAge: maxAgeS })
}

/** Returns and clears that state; null if there is none. */
export function takeOidcState(c: Context<Env>): string | null {
  const sealed = getCookie(c, OIDC)
  if (sealed === undefined) return null
  setCookie(c, OIDC, '', { ...LAX, maxAge: 0 })
  return sealed
}

/** Browsers do not send a strict cookie when the provider sends them back. */
const LAX = { path: '/', secure: true, httpOnly: true, sameSite: 'Lax' } as const

const NOTE = '__Host-ev_note'

/** Opens a page after a change; `note` is a flash message that says what was done. */
export function redirectWithNote(c: Context<Env>, path: string, note: string): Response {
  setCookie(c, NOTE, note, { ...HARD, maxAge: NOTE_S })
  return c.redirect(path, 303)
}

/** Returns and clears the flash message; null if there is none. */
export function takeNote(c: Context<Env>): string | null {
  const note = getCookie(c, NOTE)
  if (note === undefined) return null
  setCookie(c, NOTE, '', { ...HARD, maxAge: 0 })
  return note
}

const NOTE_S = 60
