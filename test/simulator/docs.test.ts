import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkScenario } from '../../src/simulator/scenario.ts'
import { BEHAVIORS } from '../../src/simulator/smtp-host/behaviors.ts'

const DOCS = readFileSync(join(import.meta.dirname, '../../docs/simulator.md'), 'utf8')
const examples = [...DOCS.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text = '']) => text)

/** The docs contain full scenarios, single rules, and parts of a scenario or of its hosts. */
function asScenario(text: string): unknown {
  const shown = JSON.parse(text.startsWith('{') ? text : `{${text}}`)
  if ('on' in shown)
    return { domains: {}, hosts: { 'mx.a.test': { behavior: 'polite', rules: [shown] } } }
  if ('hosts' in shown) return { domains: {}, ...shown }
  return { domains: {}, hosts: shown }
}

describe('docs/simulator.md', () => {
  test('shows more than a few examples', () => {
    expect(examples.length).toBeGreaterThanOrEqual(9)
  })

  test.each(examples)('shows a valid scenario: %s', text => {
    expect(checkScenario(asScenario(text)).hosts).toEqual(expect.any(Object))
  })

  test('names every behavior', () => {
    const missing = Object.keys(BEHAVIORS).filter(name => !DOCS.includes(`\`${name}\``))
    expect(missing).toEqual([])
  })

  test.each([
    ['scenario', 'mailboxes'],
    ['scenario.domains["a.test"]', 'fault'],
    ['scenario.hosts["a.test"]', 'behavior'],
    ['scenario.hosts["a.test"].rules[0]', 'sessionsAbove'],
  ])('names every key of %s', (place, known) => {
    const keys = keysOf(place)
    expect(keys).toContain(known)
    expect(keys.filter(key => !DOCS.includes(`\`${key}\``))).toEqual([])
  })
})

/** Returns the allowed keys at a path, from the error for an unknown key. */
function keysOf(place: string): string[] {
  const strange = { strange: true }
  const rules = [{ on: 'RCPT', end: 'hang', ...strange }]
  const scenario = place.endsWith('[0]')
    ? { domains: {}, hosts: { 'a.test': { behavior: 'polite', rules } } }
    : place.includes('hosts')
      ? { domains: {}, hosts: { 'a.test': { behavior: 'polite', ...strange } } }
      : place.includes('domains')
        ? { domains: { 'a.test': strange }, hosts: {} }
        : { domains: {}, hosts: {}, ...strange }
  try {
    checkScenario(scenario)
  } catch (error) {
    const [, keys = ''] = /has "strange"; it takes (.*)\.$/.exec(String(error)) ?? []
    return keys.split(', ')
  }
  return []
}
