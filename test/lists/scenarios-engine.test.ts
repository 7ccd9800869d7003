import { describe, test } from 'vitest'
import { throughEngine } from './doors.ts'
import { checkVerified, SCENARIOS } from './scenarios.ts'

describe(`through ${throughEngine.name} a list`, () => {
  test.each(SCENARIOS)('$name', async scenario => {
    checkVerified(scenario, await throughEngine.verify(scenario), throughEngine)
  })
})
