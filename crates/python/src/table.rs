//! Results as Arrow: one batch, handed over by the C stream interface [Arrow PyCapsule interface], so that polars, pandas,
//! pyarrow and DuckDB read it where it lies.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt64Array,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Field, Schema};
use fairpace_lab::{Column, Table as Rows};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};
use std::sync::Arc;

/// How many rows `_repr_html_` shows.
const SHOWN: usize = 10;

/// Text within HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A table of results: columns of one length, each of one type, with its unit in its name (`_s`, `_ms`, `_bps`, ...).
#[pyclass(module = "fairpace", frozen)]
pub(crate) struct Table {
    rows: Rows,
    batch: RecordBatch,
}

impl Table {
    pub(crate) fn new(rows: Rows) -> PyResult<Table> {
        let column = |(name, column): (&str, &Column)| {
            let array = arrow(column)?;
            Ok((Field::new(name, array.data_type().clone(), true), array))
        };
        let columns: Vec<(Field, ArrayRef)> =
            rows.columns().map(column).collect::<Result<_, ArrowError>>().map_err(bad)?;
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(bad)?;
        Ok(Table { rows, batch })
    }

    /// One column as a list.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let found = self.rows.columns().find(|(n, _)| *n == name);
        let Some((_, column)) = found else {
            let near = fairpace_scenario::nearest(name, self.rows.columns().map(|(n, _)| n));
            let near = near.map_or_else(String::new, |n| format!("; did you mean `{n}`?"));
            return Err(PyKeyError::new_err(format!("the table has no column `{name}`{near}")));
        };
        let cells: Vec<Py<PyAny>> = (0..column.len()).map(|row| cell(py, column, row)).collect::<PyResult<_>>()?;
        PyList::new(py, cells)
    }
}

fn bad(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn arrow(column: &Column) -> Result<ArrayRef, ArrowError> {
    Ok(match column {
        Column::Whole(rows) => Arc::new(rows.iter().copied().collect::<UInt64Array>()),
        Column::Number(rows) => Arc::new(rows.iter().copied().collect::<Float64Array>()),
        Column::Text(words) => {
            let keys: Int32Array = words.rows().iter().map(|place| place.map(|p| p as i32)).collect();
            let values = StringArray::from_iter_values(words.words());
            Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(values))?)
        }
    })
}

fn cell(py: Python<'_>, column: &Column, row: usize) -> PyResult<Py<PyAny>> {
    Ok(match column {
        Column::Whole(rows) => rows[row].into_pyobject(py)?.into_any().unbind(),
        Column::Number(rows) => rows[row].into_pyobject(py)?.into_any().unbind(),
        Column::Text(words) => words.get(row).into_pyobject(py)?.into_any().unbind(),
    })
}

#[pymethods]
impl Table {
    /// The rows as an Arrow stream: what `polars.from_arrow`, `pyarrow.table` and DuckDB call.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer that cannot convert gives what it has; so the interface wants it.
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    /// The columns' names and types as an Arrow schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref()).map_err(bad)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The columns' names, in order.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.rows.columns().map(|(name, _)| name).collect()
    }

    fn __len__(&self) -> usize {
        self.rows.len()
    }

    /// One column as a list; `None` where a row has nothing.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let Ok(name) = name.extract::<String>() else {
            let hint = "a column is had by its name; for rows take `to_polars()`, `to_pandas()` or `to_arrow()`";
            return Err(PyTypeError::new_err(format!("{} names no column: {hint}", name.repr()?)));
        };
        self.column(py, &name)
    }

    /// All columns, each a list.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (name, _) in self.rows.columns() {
            all.set_item(name, self.column(py, name)?)?;
        }
        Ok(all)
    }

    /// A `polars.DataFrame` over the same memory.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// A `pyarrow.Table` over the same memory.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// A `pandas.DataFrame`, by way of pyarrow.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Table::to_arrow(slf)?.call_method0("to_pandas")
    }

    /// The table as CSV, as a results folder has it.
    fn to_csv(&self) -> String {
        self.rows.csv()
    }

    /// A table goes to another process whole.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = serde_json::to_vec(&slf.get().rows).map_err(|e| PyValueError::new_err(e.to_string()))?;
        Ok((slf.get_type().getattr("_of")?, (PyBytes::new(slf.py(), &bytes),)))
    }

    /// The table that another process had.
    #[staticmethod]
    fn _of(bytes: &[u8]) -> PyResult<Table> {
        Table::new(serde_json::from_slice(bytes).map_err(|e| PyValueError::new_err(e.to_string()))?)
    }

    fn __repr__(&self) -> String {
        let names = self.columns().join(", ");
        format!("<Table of {} rows: {names}>", self.rows.len())
    }

    /// The first rows, for Jupyter.
    pub(crate) fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let mut html = String::from("<table><thead><tr>");
        for name in self.columns() {
            html.push_str(&format!("<th>{}</th>", escaped(name)));
        }
        html.push_str("</tr></thead><tbody>");
        for row in 0..self.rows.len().min(SHOWN) {
            html.push_str("<tr>");
            for (_, column) in self.rows.columns() {
                let shown = match column {
                    Column::Number(rows) => rows[row].map_or_else(String::new, |x| {
                        format!("{x:.6}").parse::<f64>().map_or_else(|_| String::new(), |x| x.to_string())
                    }),
                    other => {
                        let value = cell(py, other, row)?;
                        if value.is_none(py) { String::new() } else { value.bind(py).str()?.to_string() }
                    }
                };
                html.push_str(&format!("<td>{}</td>", escaped(&shown)));
            }
            html.push_str("</tr>");
        }
        html.push_str("</tbody></table>");
        if self.rows.len() > SHOWN {
            html.push_str(&format!("<p>{} rows, {SHOWN} shown</p>", self.rows.len()));
        }
        Ok(html)
    }
}
