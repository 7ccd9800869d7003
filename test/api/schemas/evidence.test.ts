import type { z } from '@hono/zod-openapi'
import { expect, expectTypeOf, test } from 'vitest'
import { Evidence } from '../../../src/api/schemas/evidence.ts'
import type { PresentedEvidence } from '../../../src/engine/verdict/present-result.ts'
import { presentResult } from '../../../src/index.ts'
import { createTestEngine } from '../../support/engine.ts'

type Scalar = string | number | boolean | null | undefined

type Keys<T> = T extends unknown ? keyof T : never

/** The type of a property in all variants of a union; undefined where it is missing. */
type Property<T, K> = T extends unknown ? (K extends keyof T ? T[K] : undefined) : never

/** Objects of a union as one object, without the marks `readonly` and `?`. */
type MergedObject<T> = [T] extends [never] ? never : { [K in Keys<T>]: Merged<Property<T, K>> }

type MergedItems<T> = T extends readonly (infer Item)[] ? Merged<Item>[] : never

type Merged<T> =
  | Extract<T, Scalar>
  | MergedItems<Extract<T, readonly unknown[]>>
  | MergedObject<Exclude<T, Scalar | readonly unknown[]>>

test('the schema of evidence has the type of what the engine presents', () => {
  expectTypeOf<Merged<z.output<typeof Evidence>>>().toEqualTypeOf<Merged<PresentedEvidence>>()
  // The comparison finds a missing field at any depth.
  type Incomplete = Omit<PresentedEvidence, 'route'> & { readonly route: { readonly kind: 'mx' } }
  expectTypeOf<Merged<Incomplete>>().not.toEqualTypeOf<Merged<PresentedEvidence>>()
})

test('the schema keeps every field of evidence with signals and feedback', async () => {
  const result = await createTestEngine().verify('ann@a.test')
  const level = { correct: 9.5, total: 10, priorWeight: 20, halfLifeDays: null, trend: null }
  const { evidence } = presentResult(
    {
      ...result,
      evidence: {
        ...result.evidence,
        dialogue: ['C: QUIT'],
        signals: [{ name: 'gravatar', shift: -15, detail: 'The address has a profile.' }],
        feedback: {
          kind: 'bounced',
          occurredAt: 0,
          code: 550,
          enhancedCode: '5.1.1',
          text: null,
          decides: true,
        },
        domainFeedback: { delivered: 9, bounced: 1, rateMin: 0.01, rateMax: 0.4 },
        external: { by: 'zerobounce', status: 'valid', detail: null },
        calibration: { fixed: 50, reason: level, operator: level, domain: null },
      },
    },
    ['evidence'],
  )
  expect(Object.keys(evidence ?? {})).toEqual(Object.keys(Evidence.shape))
  expect(Evidence.parse(evidence)).toEqual(evidence)
})
