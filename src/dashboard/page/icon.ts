import { html, raw } from 'hono/html'
import type { Html } from './html.ts'
import { ICONS } from './icons.ts'

export type IconName = keyof typeof ICONS

/** Renders a decorative icon in the color of the text beside it. */
export const icon = (name: IconName): Html =>
  html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">${raw(ICONS[name].join(''))}</svg>`
