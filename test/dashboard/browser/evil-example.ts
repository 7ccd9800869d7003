import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Scenario } from '../../../src/simulator/scenario.ts'

/** Runs a script if it is rendered as markup. */
export const EVIL = '<img src=x onerror=alert(1)>'

const EXAMPLE: Scenario = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../src/simulator/example.json'), 'utf8'),
)

/** The example of `ev simulate`, with a server of `evil.test` whose replies contain markup. */
export const EVIL_EXAMPLE: Scenario = {
  ...EXAMPLE,
  domains: { ...EXAMPLE.domains, 'evil.test': { mx: [[10, 'mx.evil.test']] } },
  hosts: {
    ...EXAMPLE.hosts,
    'mx.evil.test': {
      behavior: 'polite',
      rules: [{ on: 'RCPT', to: '*', reply: `550 5.1.1 ${EVIL}<script>alert(2)</script>` }],
    },
  },
}
