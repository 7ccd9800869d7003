import { describe, test } from 'vitest'
import { throughService } from './doors.ts'
import { checkVerified, SCENARIOS } from './scenarios.ts'

describe(`through ${throughService.name} a list`, () => {
  test.each(SCENARIOS)('$name', async scenario => {
    checkVerified(scenario, await throughService.verify(scenario), throughService)
  })
})
