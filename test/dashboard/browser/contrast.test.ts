import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

const CSS = readFileSync(
  join(import.meta.dirname, '../../../src/dashboard/browser/css/tokens.css'),
  'utf8',
)

/** The tokens with a color for each theme. */
const TOKENS = new Map(
  [...CSS.matchAll(/--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);/g)].map(
    ([, name = '', light = '', dark = '']) => [name, { light, dark }] as const,
  ),
)

const SURFACES = ['bg', 'surface', 'raised', 'hover']
const CLASSES = ['deliverable', 'risky', 'undeliverable', 'unknown']

/** Text and its background, which WCAG 1.4.3 requires to have a contrast of 4.5. */
const TEXTS = [
  ...['text', 'muted', 'faint', 'accent', ...CLASSES].flatMap(text =>
    SURFACES.map(surface => [text, surface] as const),
  ),
  ...CLASSES.map(kind => [kind, `${kind}-soft`] as const),
  ...(['text', 'muted'] as const).map(text => [text, 'unknown-soft'] as const),
  ...([['accent', 'accent-soft']] as const),
  ...(['accent', 'accent-hover'] as const).map(surface => ['accent-text', surface] as const),
]

/** Borders of controls and parts of charts, which WCAG 1.4.11 requires to have 3. */
const GRAPHICS = ['control', ...CLASSES.map(kind => `${kind}-fill`)].map(
  name => [name, 'surface'] as const,
)

describe.each(['light', 'dark'] as const)('in the %s theme', theme => {
  const contrastOf = (text: string, surface: string): number => {
    const [a, b] = [text, surface].map(name => luminance(TOKENS.get(name)?.[theme] ?? ''))
    const [low = 0, high = 0] = [a ?? 0, b ?? 0].sort((x, y) => x - y)
    return (high + 0.05) / (low + 0.05)
  }

  test.each(TEXTS)('the text color %s is readable on %s', (text, surface) => {
    expect(contrastOf(text, surface)).toBeGreaterThanOrEqual(4.5)
  })

  test.each(GRAPHICS)('%s is visible on %s', (color, surface) => {
    expect(contrastOf(color, surface)).toBeGreaterThanOrEqual(3)
  })
})

/** Relative luminance of sRGB (WCAG 2.2). */
function luminance(color: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5]
    .map(at => Number.parseInt(color.slice(at, at + 2), 16) / 255)
    .map(value => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}
