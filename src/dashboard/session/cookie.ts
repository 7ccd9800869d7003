import type { Context } from 'hono'
import { getCookie, setCookie } from 'hono/cookie'
import type { Env } from '../deps.ts'

/** Kept by browsers for this very host alone, with TLS alone; on this machine itself without TLS too. */
const NAME = '__Host-ev_session'

/** The token of a session, which opens it. */
export const sessionToken = (c: Context<Env>): string | null => getCookie(c, NAME) ?? null

/** Has the browser keep a token, for `maxAgeS` seconds; scripts cannot read it, other sites cannot send it. */
export function keepToken(c: Context<Env>, token: string, maxAgeS: number): void {
  setCookie(c, NAME, token, { ...HARD, maxAge: maxAgeS })
}

export function dropToken(c: Context<Env>): void {
  setCookie(c, NAME, '', { ...HARD, maxAge: 0 })
}

const HARD = { path: '/', secure: true, httpOnly: true, sameSite: 'Strict' } as const

const NOTE = '__Host-ev_note'

/** Leaves a sentence for the next page. */
export function leaveNote(c: Context<Env>, sentence: string): void {
  setCookie(c, NOTE, sentence, { ...HARD, maxAge: NOTE_S })
}

/** The sentence that the page before left; it is shown once. */
export function takeNote(c: Context<Env>): string | null {
  const note = getCookie(c, NOTE)
  if (note === undefined) return null
  setCookie(c, NOTE, '', { ...HARD, maxAge: 0 })
  return note
}

const NOTE_S = 60
