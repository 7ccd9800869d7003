import { describe, test } from 'vitest'
import { throughService } from './doors.ts'
import { checkVerified, HALVES } from './scenarios.ts'

describe(`through ${throughService.name} a list`, () => {
  test.each(HALVES[1] ?? [])('$name', async scenario => {
    checkVerified(scenario, await throughService.verify(scenario), throughService)
  })
})
