/**
 * The sentences of all operation errors by code. Each module declares its errors in its `errors.ts`
 * and adds them here:
 *
 *     const ERRORS = { job_not_found: ({ id }: { readonly id: string }) => `Job ${id} does not exist.` }
 *     type Errors = typeof ERRORS
 *     declare module '../platform/operation-error.ts' {
 *       interface OperationErrors extends Errors {}
 *     }
 *     export const jobError = createErrors(ERRORS)
 *
 * A front end has one table with a status or an exit code for each code, and a remedy in its own
 * terms where one is needed. A code that is not in the table does not compile.
 */
// biome-ignore lint/suspicious/noEmptyInterface: modules augment it.
export interface OperationErrors {}

type OperationCode = keyof OperationErrors

/** Formats the name of an input field: `"allowed_domains"` in the API, `--allow-domain` in the CLI. */
export type LabelField = (field: string) => string

/** Says what was given and what is allowed, without terms of a front end. */
// biome-ignore lint/suspicious/noExplicitAny: the facts of each code have their own type.
type Sentence = (facts: any, label: LabelField) => string

/** The facts of an error that has none. */
export type NoFacts = Readonly<Record<string, never>>

/** The facts of an error, which its sentence and the remedies of front ends need. */
export type OperationFacts<Code extends OperationCode> = OperationErrors[Code] extends Sentence
  ? Parameters<OperationErrors[Code]>[0]
  : never

/**
 * A use case refused an operation and changed nothing. The message has the field names of the HTTP
 * API.
 */
export class OperationError<Code extends OperationCode = OperationCode> extends Error {
  override readonly name = 'OperationError'
  readonly code: Code
  readonly facts: OperationFacts<Code>
  readonly #sentence: Sentence

  constructor(code: Code, facts: OperationFacts<Code>, sentence: Sentence) {
    // A refusal is an expected result: its stack is of no use and costs as much as all rate limits.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(sentence(facts, field => `"${field}"`))
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.facts = facts
    this.#sentence = sentence
  }

  /** Returns the message with the field names of another front end. */
  describe(label: LabelField): string {
    return this.#sentence(this.facts, label)
  }
}

/** Returns the function that creates the errors of a module: `throw jobError(code, facts)`. */
export const createErrors =
  <Sentences extends Readonly<Record<string, Sentence>>>(sentences: Sentences) =>
  <Code extends keyof Sentences & OperationCode>(
    code: Code,
    facts: OperationFacts<Code>,
  ): OperationError<Code> =>
    new OperationError(code, facts, sentences[code] as Sentence)

/** Whether a thrown value is an OperationError with this code. */
export const isRefusal = <Code extends OperationCode>(
  thrown: unknown,
  code: Code,
): thrown is OperationError<Code> => thrown instanceof OperationError && thrown.code === code
