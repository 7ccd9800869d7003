import { expect, test } from 'vitest'
import { REQUIRED } from '../support/real-servers.ts'
import { findNode, runTarget } from './run-target.ts'
import { TARGET_NAMES } from './target.ts'

/** A minute for all targets; `npm run fuzz` takes ten for each. */
const SECONDS = 3

const node = findNode()
const missing = 'reason' in node ? node.reason : null
if (missing !== null && REQUIRED) throw new Error(missing)

test.skipIf(missing !== null).for(TARGET_NAMES)(
  `no input of ${SECONDS} seconds breaks a rule: %s${missing === null ? '' : ` (${missing})`}`,
  async name => {
    const { executions, finding } = await runTarget(name, { seconds: SECONDS, seed: 1 })
    expect(finding).toBeNull()
    expect(executions).toBeGreaterThan(0)
  },
)
