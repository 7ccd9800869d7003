/** The dashboard says no; `message` is a sentence to be shown. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: 400 | 403 | 404 | 409 | 413 | 429 | 503 | 507

  constructor(status: Refusal['status'], message: string) {
    super(message)
    this.status = status
  }
}
