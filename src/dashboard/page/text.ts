import { html } from 'hono/html'
import type { Action } from '../../engine/verdict/action.ts'
import type { Class } from '../../engine/verdict/verdict.ts'
import type { Html } from './html.ts'
import { type IconName, icon } from './icon.ts'

/**
 * Renders a time in UTC, the time zone of all pages; null renders `otherwise`. `app.js` adds the local
 * time as a tooltip.
 */
export const time = (at: string | number | null, otherwise = '–'): Html =>
  timeElement(at, otherwise, '')

/** Renders a time that `app.js` shows as an age, such as "2 hours ago"; for tables and figures. */
export const ago = (at: string | number | null, otherwise = '–'): Html =>
  timeElement(at, otherwise, html` data-relative`)

function timeElement(at: string | number | null, otherwise: string, attribute: Html | string) {
  if (at === null) return html`${otherwise}`
  const iso = new Date(at).toISOString()
  return html`<time datetime="${iso}" title="${utc(iso, SECONDS_END)}"${attribute}>${utc(iso, MINUTES_END)}</time>`
}

/** 2026-03-21 10:30 UTC */
const utc = (iso: string, end: number) => `${iso.slice(0, 10)} ${iso.slice(11, end)} UTC`
const MINUTES_END = 16
const SECONDS_END = 19

/** Stands for an empty address, which would leave the header of its row empty. */
export const NO_ADDRESS = html`<small>(empty)</small>`

/** Severity of a notice, a status or an item; `running` is active work. */
export type Tone = 'ok' | 'info' | 'warn' | 'bad' | 'running'

export const TONE_ICONS: Readonly<Record<Tone, IconName>> = {
  ok: 'check',
  info: 'minus',
  warn: 'triangle-alert',
  bad: 'x',
  running: 'activity',
}

/** Renders a status with an icon, so it does not depend on color. */
export const statusBadge = (tone: Tone, label: Html | string): Html =>
  html`<span class="badge is-${tone}">${icon(TONE_ICONS[tone])}${label}</span>`

/** Renders a class with an icon, so it does not depend on color. */
export const badge = (kind: Class): Html =>
  html`<span class="badge is-${kind}">${icon(CLASS_ICONS[kind])}${CLASS_NAMES[kind]}</span>`

const CLASS_ICONS: Readonly<Record<Class, IconName>> = {
  deliverable: 'check',
  risky: 'triangle-alert',
  undeliverable: 'x',
  unknown: 'minus',
}

export const CLASS_NAMES: Readonly<Record<Class, string>> = {
  deliverable: 'Deliverable',
  risky: 'Risky',
  undeliverable: 'Undeliverable',
  unknown: 'Unknown',
}

/** The names of the actions that people read. */
export const ACTION_NAMES: Readonly<Record<Action, string>> = {
  send: 'Send',
  send_with_care: 'Send with care',
  retry_later: 'Retry later',
  suppress: 'Suppress',
}

export { CLASSES } from '../../engine/verdict/verdict.ts'

/** Makes the first letter upper-case. */
export const capitalize = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}`

/** Renders text to copy, such as a key; `app.js` adds a Copy button. */
export const copyable = (text: string) => html`<code class="copyable" data-copy>${text}</code>`

/** Renders a command or a program to copy; `app.js` adds a Copy button. */
export const codeBlock = (code: string): Html =>
  html`<div class="code"><pre data-copy>${code}</pre></div>`
