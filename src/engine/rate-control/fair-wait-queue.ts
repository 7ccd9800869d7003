/** Single questions that may go before lists in a row, while a list waits too. */
const SINGLES_IN_A_ROW_MAX = 3

/** Who goes first where people and lists wait for connections to the same operator. */
export class FairWaitQueue {
  #singles = 0
  #lists = 0
  #singlesInARow = 0

  /** One more waits; the function that it gives ends that. */
  wait(single: boolean): () => void {
    this.#count(single, 1)
    return () => this.#count(single, -1)
  }

  /** A single question goes first, as somebody waits for it; but no list waits for ever. */
  isOthers(single: boolean): boolean {
    const isBatchTurn = this.#lists > 0 && this.#singlesInARow >= SINGLES_IN_A_ROW_MAX
    return single ? isBatchTurn : this.#singles > 0 && !isBatchTurn
  }

  began(single: boolean): void {
    this.#singlesInARow = single && this.#lists > 0 ? this.#singlesInARow + 1 : 0
  }

  get isSingleWaiting(): boolean {
    return this.#singles > 0
  }

  #count(single: boolean, change: number) {
    if (single) this.#singles += change
    else this.#lists += change
  }
}
