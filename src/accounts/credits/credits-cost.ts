import { type Result, toClass } from '../../engine/verdict/verdict.ts'

/**
 * What a result costs, in credits: one for a definite answer that was found out anew. What could not be found
 * out, what was known already, and what is no address costs nothing.
 */
export function creditsFor({ verdict, cached }: Pick<Result, 'verdict' | 'cached'>): 0 | 1 {
  if (cached || !verdict.details.syntaxValid) return 0
  return toClass(verdict) === 'unknown' ? 0 : 1
}
