import { describe, test } from 'vitest'
import { throughMembers } from '../../lists/doors.ts'
import { checkVerified, SCENARIOS } from '../../lists/scenarios.ts'

describe(`through ${throughMembers.name} a list`, () => {
  test.each(SCENARIOS.filter(({ waits = false }) => !waits))('$name', async scenario => {
    checkVerified(scenario, await throughMembers.verify(scenario), throughMembers)
  })
})
