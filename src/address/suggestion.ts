import type { Domain } from './domain.ts'

/** What was probably meant; `sure` if the typo is a listed one, else a guess that a working MX refutes. */
export type Suggestion = { readonly domain: string; readonly sure: boolean }

export declare function suggestDomain(domain: Domain): Suggestion | null
/** A whole address for a text that does not parse but plainly lacks a dot or the like; else null. */
export declare function suggestForFault(text: string): string | null
