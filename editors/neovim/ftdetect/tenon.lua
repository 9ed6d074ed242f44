-- Model files of Tenon end in .tn.
vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, {
  pattern = "*.tn",
  callback = function() vim.bo.filetype = "tenon" end,
})
