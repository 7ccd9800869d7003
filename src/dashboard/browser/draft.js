// A long list takes half a minute to be started: until then its button says that it is.

document.addEventListener('submit', ({ submitter }) => {
  if (!(submitter instanceof HTMLButtonElement) || submitter.dataset.busy === undefined) return
  submitter.disabled = true
  submitter.textContent = submitter.dataset.busy
})

// Whoever comes back sees what has become of it.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) location.reload()
})
