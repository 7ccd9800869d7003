import { html } from 'hono/html'
import type { Class } from '../../verdict/verdict.ts'
import type { Html } from './html.ts'

/** 1,234,567 */
export const number = (value: number): string => value.toLocaleString('en')

/** “1 address”, “12,345 addresses”; the plural is the singular with an s where none is given. */
export const count = (value: number, one: string, many = `${one}s`): string =>
  `${number(value)} ${value === 1 ? one : many}`

/** “12.3 %” of a whole; of nothing it is 0 %. Little is not nothing: “< 0.1 %”. */
export function percent(part: number, whole: number): string {
  const share = whole === 0 ? 0 : (100 * part) / whole
  if (share > 0 && share < 0.05) return '< 0.1 %'
  return `${share.toLocaleString('en', { maximumFractionDigits: 1 })} %`
}

/** “850 ms”, “12 s”, “3 min 20 s”, “2 h 5 min”, “4 days”. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min${seconds % 60 === 0 ? '' : ` ${seconds % 60} s`}`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours} h${minutes % 60 === 0 ? '' : ` ${minutes % 60} min`}`
  return `${Math.round(hours / 24)} days`
}

/** “512 B”, “12 KB”, “1.5 MB”, “2.4 GB”: thousands, as disks are sold. */
export function size(bytes: number): string {
  const unit = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  const value = bytes / 1_000 ** unit
  const maximumFractionDigits = unit < 2 || value >= 100 ? 0 : 1
  return `${value.toLocaleString('en', { maximumFractionDigits })} ${UNITS[unit]}`
}

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'] as const

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
