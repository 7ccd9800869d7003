import { html } from 'hono/html'
import type { Class } from '../../engine/verdict/verdict.ts'
import type { Html } from './html.ts'

/** A point of time, in UTC; scripts show it in the time of who reads, with UTC on hover. Null: `otherwise`. */
export function time(at: string | number | null, otherwise = '–'): Html {
  if (at === null) return html`${otherwise}`
  const iso = new Date(at).toISOString()
  return html`<time datetime="${iso}" title="${utc(iso)}">${utc(iso)}</time>`
}

/** 2026-03-21 10:30:00 UTC */
const utc = (iso: string) => `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`

/** A class as people see it, told by its sign as well as by its colour. */
export const badge = (kind: Class) =>
  html`<span class="badge is-${kind}"><span aria-hidden="true">${SIGNS[kind]}</span> ${kind}</span>`

const SIGNS: Readonly<Record<Class, string>> = {
  deliverable: '✓',
  risky: '!',
  undeliverable: '✕',
  unknown: '?',
}

/** Text to be copied, such as a key; scripts put a button beside it. */
export const copyable = (text: string) => html`<code class="copyable" data-copy>${text}</code>`
