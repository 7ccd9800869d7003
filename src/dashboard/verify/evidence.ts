import type { SingleResult } from '../../client/types.ts'

/** The parts of the evidence that a page shows. */
export type Evidence = {
  readonly operator: string | null
  readonly syntax: { readonly message: string; readonly rule: string } | null
  readonly answer: {
    readonly why: string
    readonly code: number | null
    readonly enhanced_code: string | null
    readonly text: string
    readonly meaning: string
  } | null
}

/** The evidence of a result. Its fields may change, so it has no schema: what is not there is null. */
export function evidenceOf({ evidence }: SingleResult): Evidence {
  return { operator: null, syntax: null, answer: null, ...evidence }
}
