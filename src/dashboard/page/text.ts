import { html } from 'hono/html'
import type { Class } from '../../engine/verdict/verdict.ts'
import type { Html } from './html.ts'

/** Renders a time in UTC, which `app.js` shows in local time; null renders `otherwise`. */
export function time(at: string | number | null, otherwise = '–'): Html {
  if (at === null) return html`${otherwise}`
  const iso = new Date(at).toISOString()
  return html`<time datetime="${iso}" title="${utc(iso)}">${utc(iso)}</time>`
}

/** 2026-03-21 10:30:00 UTC */
const utc = (iso: string) => `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`

/** Renders a class with an icon, so it does not depend on color. */
export const badge = (kind: Class) =>
  html`<span class="badge is-${kind}"><span aria-hidden="true">${SIGNS[kind]}</span> ${kind}</span>`

const SIGNS: Readonly<Record<Class, string>> = {
  deliverable: '✓',
  risky: '!',
  undeliverable: '✕',
  unknown: '?',
}

/** Renders text to copy, such as a key; `app.js` adds a Copy button. */
export const copyable = (text: string) => html`<code class="copyable" data-copy>${text}</code>`
